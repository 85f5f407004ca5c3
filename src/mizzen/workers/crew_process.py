"""The script of a process of a crew."""

from mizzen.workers.crew import main

if __name__ == "__main__":
    main()
