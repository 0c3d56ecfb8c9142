"""OneFlow's place of the options of a graph."""

from sbpjax.graph.config import GraphConfig as GraphConfig
