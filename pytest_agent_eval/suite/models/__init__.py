"""The blocks of eval.yaml as frozen pydantic models, one module a block.

They check the type and the range of each key by itself; what concerns several keys is checked in
:mod:`pytest_agent_eval.suite.checks`, on the data as written, so that one wrong key hides no other.
"""
