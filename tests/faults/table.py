"""Print the table: `python tests/faults/table.py [--all]` names what is missed, and with --all every fault.

`python tests/faults/table.py --pairs N` puts N pairs of faults into one machine each.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]

from faults import tables
from faults.fault import Fault, Verdict, judge, shown, standing


def line(faults: tuple[Fault, ...], verdict: Verdict) -> str:
    state = "ok" if verdict.holds else "MISSED" if not verdict.found else "ALARM" if verdict.right else "WRONG"
    expected = "; ".join(
        f"{one.check} {one.severity} {'/'.join(map(str, one.subjects))}"
        for fault in faults
        for one in fault.expected[:2]
    )
    return f"{state:7}{' + '.join(map(str, faults))} -> {expected}  [{faults[0].source}]"


def print_pairs(count: int) -> int:
    found = tables.sample(count)
    failed = 0
    for pair in found:
        verdict = judge(pair, tables.with_both(*pair).findings())
        if not verdict.holds:
            failed += 1
            print(line(pair, verdict), *verdict.said, sep="\n         ")
    print(f"{len(found)} of {len(tables.pairs())} pairs: {len(found) - failed} with both findings and no other")
    return failed


def print_all(every: bool) -> int:
    judged = list(tables.verdicts())
    for fault in tables.AS_RECORDED:
        verdict = judge((fault,), fault.machine().findings())
        if not verdict.holds:
            print(line((fault,), verdict), *verdict.said, sep="\n         ")
    for fault, verdict in judged:
        if every or not verdict.holds:
            print(line((fault,), verdict), *verdict.said, sep="\n         ")
    alarms = 0
    for one in tables.HEALTHY:
        raised = standing(one.kind, one.machine().findings())
        alarms += bool(raised)
        if every or raised:
            print(f"{'ALARM' if raised else 'well':7}{one}", *map(shown, raised), sep="\n         ")
    count = len(judged)
    print(
        f"{count} faults on {len({fault.kind for fault, _ in judged})} kinds of machine: "
        f"{sum(one.found for _, one in judged)} found, {sum(one.found and one.right for _, one in judged)} with the "
        f"right severity, subject and remedy, {sum(bool(one.false_alarms) for _, one in judged)} with a false alarm "
        f"beside, {sum(bool(one.wrong_gpu) for _, one in judged)} naming another GPU; {len(tables.HEALTHY)} healthy "
        f"machines of {len({one.kind for one in tables.HEALTHY})} kinds, {alarms} with a false alarm"
    )
    return count - sum(one.holds for _, one in judged) + alarms


if __name__ == "__main__":
    if "--pairs" in sys.argv:
        sys.exit(bool(print_pairs(int(sys.argv[-1]))))
    sys.exit(bool(print_all("--all" in sys.argv)))
