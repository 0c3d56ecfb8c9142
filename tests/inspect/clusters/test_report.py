"""The report of a search: its reasons add up, its page stands alone; and the command around it."""

import re

import pytest

from sbpjax._core.inspect.clusters.report import differences, seconds_text
from sbpjax._core.inspect.display import bytes_text
from sbpjax.models import Parallel
from sbpjax.plan import SearchReport, Transformer, explain_costs, machine, main, search

MODEL = Transformer(name="small", layers=8, width=2048, heads=16, kv_heads=8, hidden=8192, vocab=32000)


@pytest.fixture(scope="module")
def found():
    return search(MODEL, machine("h100:2x8"), 4096, 64, limit_bytes=8e9)


def test_differences_add_up_to_the_time_lost(found):
    for other in found.alternatives:
        total = sum(seconds for seconds, _, _ in differences(found.choice, other))
        assert total == pytest.approx(other.seconds - found.choice.seconds)


def test_report_names_the_choice_and_three_others(found):
    text = str(SearchReport(found))
    assert found.choice.layout.text() in text
    assert "in sbpjax.train: Trainer(batch_size=64, parallel=Parallel(" in text and "of 4,096 tokens\n" in f"{text}\n"
    for other in found.alternatives:
        lost = seconds_text(other.seconds - found.choice.seconds)
        assert f"{other.layout.text()} is {lost} slower:" in text


def test_every_size_has_the_price_of_its_neighbours(found):
    text = str(SearchReport(found))
    layout, prices = found.choice.layout, 0
    for name in ("pipeline", "data", "fsdp", "context", "tensor", "micro_batch"):
        value, label = getattr(layout, name), name.replace("_", "-")
        if value == 1 and name != "micro_batch":
            continue
        (row,) = re.findall(rf"^{label} +{value} .*$", text, re.M)
        for other in (value // 2, value * 2):
            if (step := found.fastest.get((name, other))) is not None:
                assert f"{other}: +{seconds_text(step.seconds - found.choice.seconds)}" in row
                assert getattr(step.layout, name) == other and step.seconds >= found.choice.seconds
            elif (name, other) in found.least_bytes:
                assert f"{other}: needs {bytes_text(found.least_bytes[name, other])}" in row
                assert found.least_bytes[name, other] > found.limit_bytes
            prices += f"{other}: " in row
    assert prices >= 2 and re.search(r"^recompute +\w+ .*(full|none): (\+|needs )", text, re.M)


def test_the_layout_is_one_that_the_trainer_takes(found):
    text = re.search(r"parallel=(Parallel\(.*?\)),", str(SearchReport(found))).group(1)
    assert eval(text, {"Parallel": Parallel}).devices == 16


def test_explain_costs_has_the_largest_and_the_memory_by_part(found):
    lines = explain_costs(found.choice).splitlines()
    assert lines[1].startswith(found.choice.costs()[0].name)
    assert any(line.startswith("activations") for line in lines)


def test_command_writes_a_page_that_stands_alone(tmp_path, capsys):
    page = tmp_path / "plan.html"
    main(["llama-8b", "--machine", "h100:1x8", "--batch", "512k", "--html", str(page)])
    assert "llama-8b (8B parameters) on h100:1x8 (8 chips), 64 sequences of 8,192 tokens" in capsys.readouterr().out
    html = page.read_text()
    assert html.count("<rect") > 8 and " slower:" in html and not re.search(r"<script|src=|href=", html)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["llama-8b", "--machine", "h100:8", "--batch", "4Q"], "a whole number of tokens"),
        (
            ["llama-8b", "--machine", "h100:8", "--batch", "1M", "--length", "3000"],
            "whole sequences of 3,000 tokens\n  fix:  --batch 1047000 or --batch 1050000",
        ),
        (["llama-9b", "--machine", "h100:8", "--batch", "1M"], "models are llama-8b"),
        (["llama-405b", "--machine", "h100:8", "--batch", "1M"], "the smallest of"),
    ],
)
def test_command_ends_with_one_message(arguments, text):
    with pytest.raises(SystemExit, match=text):
        main(arguments)
