"""When a group changes its size: Ray's own rule, asked of the nodes that there are now."""
import time

import ray
from ray.train.v2._internal.execution.scaling_policy import ElasticScalingPolicy, NoopDecision

_ANSWER_SECONDS, _PAUSE_SECONDS = 5.0, 0.2


class Elastic(ElasticScalingPolicy):
    """Ray's policy for ScalingConfig(num_workers=(1, 4)).

    Ray counts its nodes every 20 s and answers from that count, so that a new node waits, and a group may be started on
    a node that is lost already. This one has the nodes counted when the controller asks.
    """

    def make_decision_for_non_running_worker_group(self):
        """Which size a group is to have that is not there; the controller asks without a pause until there is one."""
        decision = super().make_decision_for_non_running_worker_group()
        if isinstance(decision, NoopDecision):
            time.sleep(_PAUSE_SECONDS)
        return decision

    def _get_reserved_resources(self):
        try:
            counted = self._autoscaling_coordinator.get_reserved_resources.remote(self._requester_id, recompute=True)
            self._latest_reserved_resources = ray.get(counted, timeout=_ANSWER_SECONDS)
        except Exception as error:  # as Ray's does: the group stays as it is, and the controller asks again
            print(f"berth.ray: Ray did not say which nodes there are ({type(error).__name__}: {error}); the group stays as it "
                  "is until it does", flush=True)
            self._latest_reserved_resources = None
        return self._latest_reserved_resources
