"""What a planned program holds in memory: `sbpjax.sbp.plan.liveness`, under the name that this room uses."""

from sbpjax.sbp.plan.liveness import Held as Held
from sbpjax.sbp.plan.liveness import Spans as Spans
from sbpjax.sbp.plan.liveness import peak as peak
