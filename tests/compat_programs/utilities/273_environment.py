import oneflow as flow
from shown import show

show("ranks", (flow.env.get_rank(), flow.env.get_local_rank(), flow.env.get_world_size(), flow.env.get_node_size()))
show("version", flow.__version__.split(".")[0].isdigit())
show("device", flow.device("cpu"))
show("index", (flow.device("cpu:0").type, flow.device("cpu", 0) == flow.device("cpu:0")))
show("cuda", flow.cuda.is_available())
show("count", flow.cuda.device_count())
