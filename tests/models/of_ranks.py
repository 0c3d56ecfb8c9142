"""What every rank of `test_processes.py` does: read a folder, train a step, write it, read it again, generate."""

import json
import sys

import numpy as np

import sbpjax as flow
from sbpjax import models
from tests.models.cases import Step, facts
from tests.models.record import DATA, PROMPTS


def main(folder):
    spec = models.Parallel(data=2, tensor=2, device="cpu")
    given = facts("gpt2")
    model = models.from_pretrained(DATA / "gpt2", spec).eval()
    with flow.no_grad():
        loss = model.loss(*[spec.place(given[name]) for name in ("tokens", "targets", "present")])
    np.testing.assert_allclose(loss.item(), given["loss"], rtol=1e-5)
    recorded = json.loads((DATA / "generated.json").read_text())["gpt2"]["greedy"]
    assert models.generate(model, PROMPTS, 4, spec) == [row[:4] for row in recorded]

    Step(model)(spec.place(given["tokens"]), spec.place(given["targets"]))
    models.save_pretrained(model, folder)
    whole = models.from_pretrained(folder)  # every process reads all of it
    again = models.parallelize(models.from_pretrained(folder), spec)
    for (name, ours), one, other in zip(model.named_parameters(), whole.parameters(), again.parameters(), strict=True):
        assert ours.sbp == other.sbp, name
        for found in (one, other):
            np.testing.assert_array_equal(found.detach().numpy(), ours.detach().numpy(), err_msg=name)
    print("rank passed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
