from gputune.cli import main

main()
