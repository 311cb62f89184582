"""``python -m axon``: the command, where no script was installed."""

from axon.cli import main

if __name__ == "__main__":
    main()
