"""Arguments of layers, losses and matrix functions that PyTorch refuses; see `test_values_refused` for the rest."""

import pytest

from tests.support.refusals import assert_refused_alike

CASES = """
T.empty(2).fill_(T.ones(2))
T.empty(2).fill_(T.tensor(3.))
F.prelu(T.rand(2,3),T.rand(1,3))
F.ctc_loss(T.rand(5,2,4).log_softmax(-1),T.tensor([[1,2],[1,2]]),T.tensor([5,5]),T.tensor([2,-2]))
F.ctc_loss(T.rand(5,2,4).log_softmax(-1),T.tensor([[1,2],[1,2]]),T.tensor([5,-5]),T.tensor([2,2]))
F.pad(T.ones(2,dtype=T.int8),(1,1),value=300)
F.pad(T.ones(2,dtype=T.int64),(1,1),value=1.5)
F.pad(T.ones(2),(1,1),value=1j)
F.pad(T.ones(2),(1,1),value=1e40)
F.scaled_dot_product_attention(*[T.rand(2,3)]*3,attn_mask=T.ones(2,2,dtype=T.int64))
F.scaled_dot_product_attention(*[T.rand(2,3)]*3,attn_mask=T.ones(2,2,dtype=T.bool))
T.nn.RNNCell(2,2)(T.rand(1,2),T.rand(2,2))
T.nn.RNNCell(2,2)(T.rand(2),T.rand(1,2))
T.nn.RNNCell(2,2)(T.rand(2),T.rand(2))
T.nn.GRUCell(2,2)(T.rand(2,2),T.rand(1,2))
T.nn.LSTMCell(2,2)(T.rand(1,2),(T.rand(1,2),T.rand(2,2)))
T.nn.LSTMCell(2,2)(T.rand(2,2),(T.rand(2,2),T.rand(2,2)))
T.nn.Hardtanh(1,1)
T.nn.init.calculate_gain('leaky_relu','x')
T.nn.init.calculate_gain('leaky_relu',True)
T.nn.init.calculate_gain('leaky_relu',1)
T.cartesian_prod(T.rand(2,2))
T.cartesian_prod(T.rand(2),T.rand(2,2))
T.searchsorted(T.rand(3),T.rand(3),sorter=T.tensor([0,1]))
T.searchsorted(T.rand(3),T.rand(3),sorter=T.tensor([0,1,2]))
T.cdist(T.rand(2,2),T.rand(2,2),compute_mode='x')
T.cdist(T.rand(2,2),T.rand(2,2),compute_mode='use_mm_for_euclid_dist')
T.mode(T.rand(0))
T.mode(T.rand(2,0),0)
T.lu_unpack(T.rand(2,2),T.tensor([5,2],dtype=T.int32))
T.lu_unpack(T.rand(2,2),T.tensor([0,2],dtype=T.int32))
T.lu_unpack(T.rand(2,2),T.tensor([2,2],dtype=T.int32))
T.linalg.lu_solve(T.rand(2,2),T.tensor([5,2],dtype=T.int32),T.rand(2,1))
T.linalg.lu_solve(T.rand(2,2),T.tensor([0,2],dtype=T.int32),T.rand(2,1))
""".strip().splitlines()


@pytest.mark.parametrize("case", CASES)
def test_arguments_are_refused_where_pytorch_refuses_them(case):
    assert_refused_alike(case)
