from gputune_start import main

main()
