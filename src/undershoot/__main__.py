"""python -m undershoot"""

from undershoot.cli import main

main()
