"""Op table: complex-number ops. Any sbp; conjugates and parts of a partial sum are partial sums."""

from __future__ import annotations

from ..table.table import FN, INPLACE, METHOD, op, written

COMPLEX = "sbpjax._core.functions.complex_numbers"
READ = FN | METHOD

op("angle(input)", "complex.angle", READ)
op("sgn(input)", "complex.sgn", READ | INPLACE)
op("conj_physical(input)", "complex.conj", READ | INPLACE)
op("isreal(input)", "complex.isreal", READ, out=False)
op("complex(real, imag)", "complex.complex", exact_out=True)
op("polar(abs, angle)", "complex.polar", exact_out=True)
written("conj is_conj is_neg resolve_conj resolve_neg", COMPLEX, READ)
written("real imag view_as_real view_as_complex", COMPLEX)
