"""A bar on a terminal, lines elsewhere."""

import io

from rich.console import Console

from sbpjax.train.writers import Bar, Lines, console_writer


def test_a_bar(monkeypatch):
    file = io.StringIO()
    bar = Bar(Console(file=file, force_terminal=True, width=120))
    bar.open(None, 5, 20)
    bar.write(10, {"loss": 4.10456, "tokens_per_s": 12345.6, "eta_s": 3.0})
    bar.write(10, {"validation/loss": 3.5})
    bar.say("hello [bold]")
    bar.close()
    text = file.getvalue()
    assert "10/20" in text and "loss 4.105   12,346 tokens/s" in text
    assert "step 10   validation/loss 3.5" in text and "hello [bold]" in text


def test_lines_before_and_after_the_bar(capsys):
    file = io.StringIO()
    for bar, text in ((Bar(Console(file=file)), file.getvalue), (Bar(), lambda: capsys.readouterr().out)):
        bar.say("resumed [at] step 3")
        bar.close()
        bar.open(None, 3, 20)
        bar.close()
        bar.say("the end")
        found = text()
        assert found.index("resumed [at] step 3") < found.index("3/20") < found.index("the end")


def test_which_one(monkeypatch):
    assert isinstance(console_writer(), Lines)  # pytest's stdout is no terminal
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert isinstance(console_writer(), Bar)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert isinstance(console_writer(), Lines)
