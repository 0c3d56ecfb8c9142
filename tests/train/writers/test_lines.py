"""Lines of text."""

from sbpjax.train.writers import Lines


def test_lines(capsys):
    writer = Lines()
    writer.open(None, 0, 1000)
    writer.write(20, {"loss": 4.10456, "lr": 2e-4, "tokens_per_s": 12345.6, "data_ms": 1.0})
    writer.write(30, {"validation/loss": 3.5})
    assert capsys.readouterr().out == (
        "step    20 of 1,000   loss 4.105   lr 0.0002   12,346 tokens/s\nstep    30 of 1,000   validation/loss 3.5\n"
    )
