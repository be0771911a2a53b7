"""Run ``klr-bench`` as ``python -m klr_bench``."""

from klr_bench.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
