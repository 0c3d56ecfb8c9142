from sbpjax.env import get_local_rank as get_local_rank
from sbpjax.env import get_rank as get_rank
from sbpjax.env import get_world_size as get_world_size
from sbpjax.env import init as init
