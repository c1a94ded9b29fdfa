"""JSON holds the dataclasses as they are, except that no text tells who and where."""

import json
from dataclasses import replace

from recorded import facts_of

from gputune import checks
from gputune.facts import Facts
from gputune.strict_types import convert


def test_a_check_holds_facts_and_findings():
    from gputune.report import json as out

    facts = facts_of("nvidia-h200-x8")
    answer = json.loads(out.check(facts, checks.run(facts)))
    assert set(answer) == {"facts", "findings"}
    read = convert(Facts, answer["facts"])
    assert replace(read, process=facts.process) == facts
    assert [folder.variable for folder in read.process.folders] == [one.variable for one in facts.process.folders]
    assert {finding["check"] for finding in answer["findings"]} == set(checks.names())
