"""`python -m rsp_engine.cli`."""

from rsp_engine.cli import main

if __name__ == "__main__":
    main(prog_name="rsp")
