from .system import Cluster, ClusterConfig
