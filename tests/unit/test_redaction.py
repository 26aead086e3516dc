from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_agent_eval.redaction import NO_SECRETS, Secrets, is_secret_name
from pytest_agent_eval.results import TrialResult, Usage, Verdict

KEY = "sk-Ab3/x+9\"q\\z'ü%"
SECRETS = Secrets.of({"MY_KEY": KEY})

# Letters of which values of different variables overlap, contain and repeat each other.
values = st.text("ab/ü", min_size=8, max_size=20)
environments = st.dictionaries(
    st.sampled_from(["X_KEY", "Y_TOKEN", "Z_SECRET", "PASSWORD"]), values, min_size=1
)


@st.composite
def with_secrets(draw: st.DrawFn) -> tuple[Secrets, list[str], str]:
    """Secrets, their values, and a text that holds some of them, overlapping or cut short."""
    environment = draw(environments)
    known = list(environment.values())
    pieces = st.one_of(
        st.sampled_from(known),
        st.sampled_from(known).flatmap(lambda v: st.integers(0, len(v)).map(lambda n: v[:n])),
        st.sampled_from(known).flatmap(lambda v: st.integers(0, len(v)).map(lambda n: v[n:])),
        st.text("ab/ü \n", max_size=5),
    )
    return Secrets.of(environment), known, "".join(draw(st.lists(pieces, max_size=8)))


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "github_token", "My_Secret", "PGPASSWORD", "password_file", "Db_PassWord2"],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["KEY", "TOKENS", "KEYBOARD", "SECRETARY", "X_KEYS", "PASS", ""])
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)


def test_values_that_are_too_short_or_blank_are_no_secrets() -> None:
    assert Secrets.of({"A_KEY": "1234567", "B_KEY": " " * 9, "C": "12345678"}) is NO_SECRETS
    assert Secrets.of({}) is NO_SECRETS
    assert Secrets.of({"A_KEY": "12345678"}).names == ("A_KEY",)


def test_all_environments_count() -> None:
    secrets = Secrets.of({"A_KEY": "callervalue"}, {"A_KEY": "suitevalue", "B_TOKEN": "another1"})
    assert secrets.names == ("A_KEY", "B_TOKEN")
    said = secrets.text("callervalue suitevalue another1")
    assert said == "***A_KEY*** ***A_KEY*** ***B_TOKEN***"


def test_without_secrets_the_argument_itself_is_returned() -> None:
    result, value, data = TrialResult("s", "c", "dev", "passed"), {"a": ["b"]}, b"x" * 100
    assert NO_SECRETS.text("text") == "text"
    assert NO_SECRETS.data(data) is data
    assert NO_SECRETS.value(value) is value
    assert NO_SECRETS.result(result) is result
    stream = NO_SECRETS.filter()
    assert stream.feed(data) is data
    assert stream.flush() == b""
    assert not NO_SECRETS


def test_text_without_a_secret_is_returned_itself() -> None:
    text, data = "nothing in here " * 10, b"nothing in here " * 10
    assert SECRETS.text(text) is text
    assert SECRETS.data(data) is data


def test_secrets_do_not_show_themselves() -> None:
    assert repr(SECRETS) == "<Secrets: MY_KEY>"
    assert KEY not in f"{SECRETS!r} {SECRETS}"


def test_secrets_cross_processes() -> None:
    assert pickle.loads(pickle.dumps(SECRETS)) == SECRETS


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda key: json.dumps({"k": f"a {key} b"}),
    "json not in ascii": lambda key: json.dumps({"k": f"a {key} b"}, ensure_ascii=False),
    "json with \\/": lambda key: json.dumps({"k": key}, ensure_ascii=False).replace("/", "\\/"),
    "json in json": lambda key: json.dumps(json.dumps({"k": key})),
    "json not in ascii in json": lambda key: json.dumps(json.dumps([key], ensure_ascii=False)),
    "repr": lambda key: repr(key)[1:-1],
    "url": lambda key: f"https://example.com/?k={quote(key)}&b",
    "url, all escaped": lambda key: f"https://example.com/?k={quote(key, safe='')}&b",
    "form": lambda key: f"https://example.com/?k={quote_plus(key)}&b",
    "encodeURIComponent": lambda key: quote(key, safe="!'()*"),
    "url, lower case": lambda key: "k=sk-Ab3%2fx%2b9%22q%5cz%27%c3%bc%25&",
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 for urls": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    "echo | base64": lambda key: base64.b64encode(f"{key}\n".encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms_of_a_secret(form: Callable[[str], str]) -> None:
    text = f"before {form(KEY)} after"
    clean = SECRETS.text(text)
    assert "***MY_KEY***" in clean
    # No three characters in a row are left of what is not plain.
    assert not any(part in clean for part in ("Ab3", "c2st", "9%22", '9\\"q', "q\\"))
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert SECRETS.data(text.encode()) == clean.encode()


def test_longer_secrets_and_secrets_within_secrets() -> None:
    secrets = Secrets.of({"A_KEY": "abcdefgh", "B_KEY": "xxabcdefghyy", "C_KEY": "abcdefghyyzz"})
    assert secrets.text("abcdefgh") == "***A_KEY***"
    assert secrets.text("-xxabcdefghyy-") == "-***B_KEY***-"
    assert secrets.text("-abcdefghyy-") == "-***A_KEY***yy-"
    assert secrets.text("-xxabcdefghyyzz-") == "-***B_KEY***-"
    assert secrets.text("abcdefghabcdefgh") == "***A_KEY******A_KEY***"


def test_a_value_that_repeats_itself_does_not_grow() -> None:
    secrets = Secrets.of({"A_KEY": "0" * 8})
    assert secrets.text("0" * 100_000) == "***A_KEY***"
    stream = secrets.filter()
    assert b"".join(stream.feed(b"0" * 999) for _ in range(50)) + stream.flush() == b"***A_KEY***"


def test_a_value_that_is_the_name_of_its_variable() -> None:
    secrets = Secrets.of({"OPENAI_API_KEY": "OPENAI_API_KEY"})
    once = secrets.text("key: OPENAI_API_KEY.")
    assert once == "key: ***OPENAI_API_KEY***."
    assert secrets.text(once) == once


def test_a_private_key_is_found_line_by_line() -> None:
    body = ["MIIEpAIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo", "4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onL"]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----\n"])
    secrets = Secrets.of({"SSH_KEY": key})
    assert secrets.text(f"<{key}>") == "<***SSH_KEY***\n>"
    assert secrets.text(key.replace("\n", "\r\n")) == "***SSH_KEY***\r\n"
    assert secrets.text(json.dumps({"key": key})) == '{"key": "***SSH_KEY***\\n"}'
    indented = "".join(f"  | {line}\n" for line in key.splitlines())
    assert not any(line in secrets.text(indented) for line in body)
    assert "  | -----BEGIN RSA PRIVATE KEY-----" in secrets.text(indented)


def test_bytes_of_the_environment_that_are_no_text() -> None:
    secrets = Secrets.of({"A_KEY": b"secret-\xff-value".decode("utf-8", "surrogateescape")})
    assert secrets.data(b"<secret-\xff-value>") == b"<***A_KEY***>"
    assert secrets.text("<secret-\udcff-value>") == "<***A_KEY***>"
    assert secrets.text("<secret-�-value>") == "<***A_KEY***>"
    assert secrets.file_name("out/secret-\udcff-value.txt") == "out/***A_KEY***.txt"


def test_names_that_are_no_part_of_a_path() -> None:
    assert Secrets.of({"../A_KEY": "12345678"}).file_name("a/12345678") == "a/***.._A_KEY***"


def test_nested_values() -> None:
    secrets = Secrets.of({"PIN_KEY": "12345678", "W_KEY": "password"})
    value = {
        "password": ["a password", ("password", 12345678, 123456789, True, None, 1.5)],
        3: b"x",
    }
    assert secrets.value(value) == {
        "***W_KEY***": [
            "a ***W_KEY***",
            ("***W_KEY***", "***PIN_KEY***", 123456789, True, None, 1.5),
        ],
        3: b"x",
    }
    encoded = base64.b64encode(b"password").decode()
    assert secrets.value({"password": 1, encoded: 2}) == {"***W_KEY***": 1, "***W_KEY*** (2)": 2}
    assert secrets.value(10**5000) == 10**5000


def test_a_value_that_contains_itself_has_an_end() -> None:
    value: list[object] = ["password"]
    value.append(value)
    assert json.dumps(Secrets.of({"W_KEY": "password"}).value(value)).count("***W_KEY***") == 100


def test_a_result_keeps_its_identity_and_loses_its_secrets() -> None:
    word = "password"
    verdict = Verdict(word, value=True, passed=True, rationale=word, error=word, detail=word)
    result = TrialResult(
        suite=f"{word}/eval.yaml",
        case=word,
        split="dev",
        status="failed",
        kind="verdict",
        reason=f"the {word}",
        group=word,
        tags={word: word},
        category=word,
        variant=word,
        execution=verdict,
        verdicts=(verdict,),
        usage=Usage(
            model=word,
            models_used=(word,),
            per_model_usage={word: {word: 12}},
            per_model_turns={word: 2},
        ),
        workspace=f"/tmp/{word}",
        record=f"cases/{word}/1",
        notes=(word,),
        case_digest="0" * 32,
    )
    clean = Secrets.of({"W_KEY": word, "Z_KEY": "0" * 32}).result(result)
    hidden = "***W_KEY***"
    said = Verdict(word, value=True, passed=True, rationale=hidden, error=hidden, detail=hidden)
    assert clean == TrialResult(
        suite=f"{word}/eval.yaml",
        case=word,
        split="dev",
        status="failed",
        kind="verdict",
        reason=f"the {hidden}",
        group=word,
        tags={hidden: hidden},
        category=hidden,
        variant=word,
        execution=said,
        verdicts=(said,),
        usage=Usage(
            model=hidden,
            models_used=(hidden,),
            per_model_usage={hidden: {hidden: 12}},
            per_model_turns={hidden: 2},
        ),
        workspace=f"/tmp/{hidden}",
        record=f"cases/{word}/1",
        notes=(hidden,),
        case_digest="0" * 32,
    )
    assert SECRETS.result(TrialResult("s", "c", "dev", "passed")).usage.model is None


@given(with_secrets())
@example((Secrets.of({"X_KEY": "aaaaaaaa", "Y_TOKEN": "aaaabbbb"}), [], "aaaaaaaaaaaabbbb"))
def test_no_secret_survives_and_twice_is_once(case: tuple[Secrets, list[str], str]) -> None:
    secrets, known, text = case
    clean = secrets.text(text)
    assert not any(value.strip() in clean for value in known)
    assert secrets.text(clean) == clean
    assert secrets.data(text.encode()) == clean.encode()
    if "***" not in clean:
        assert clean == text


@given(environments, st.text())
def test_text_without_a_secret_is_unchanged(environment: dict[str, str], text: str) -> None:
    text = text.replace("a", "").replace("b", "")
    if not any(value.strip("/ü") == "" for value in environment.values()):
        assert Secrets.of(environment).text(text) == text


@given(with_secrets(), st.data())
def test_no_chunking_matters(case: tuple[Secrets, list[str], str], data: st.DataObject) -> None:
    secrets, _, text = case
    whole = text.encode()
    stream, passed, at = secrets.filter(), b"", 0
    while at < len(whole):
        size = data.draw(st.integers(1, 12))
        passed += stream.feed(whole[at : at + size])
        at += size
    assert passed + stream.flush() == secrets.data(whole)
    assert stream.flush() == b""


def test_no_more_is_held_back_than_needed() -> None:
    stream = Secrets.of({"A_KEY": "abcdefghijkl"}).filter()
    assert stream.feed(b"hello\n") == b"hello\n"
    assert stream.feed(b"hello ab") == b"hello "
    assert stream.feed(b"x") == b"abx"
    assert stream.feed(b"abcdefghijk") == b""
    assert stream.feed(b"l") == b"***A_KEY***"
    assert stream.feed(b"abcdefghijka") == b"abcdefghijk"
    assert stream.flush() == b"a"
