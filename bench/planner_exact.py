"""The best throughput of a small problem by CP-SAT (ortools, PyPI), for planner_rows.py."""
from ortools.sat.python import cp_model


def throughput(graph, machine, seconds):
    """The least load of the busiest device, engine or link; None: no plan; "unknown": no time."""
    cp, ops, devices = cp_model.CpModel(), graph.ops, range(machine.count)
    on = [[cp.new_bool_var("") for _ in devices] for _ in ops]
    first, readers = {}, [[] for _ in ops]
    for i, op in enumerate(ops):
        cp.add_exactly_one(on[i])
        j = first.setdefault(op.weight, i) if op.weight >= 0 else i
        for d in devices:
            cp.add(on[i][d] == on[j][d])
        for p, _ in op.reads:
            readers[p].append(i)
    most = cp.new_int_var(0, 10**6, "")
    arrives, shared = [[] for _ in devices], {}
    for i, b in ((i, b) for i in range(len(ops)) for b in devices if readers[i]):
        read = cp.new_bool_var("")  # the value of op i is read on b
        cp.add_max_equality(read, [on[r][b] for r in readers[i]])
        for a in devices:
            if a == b:
                continue
            both = cp.new_bool_var("")  # and made on a
            cp.add_bool_and([on[i][a], read]).only_enforce_if(both)
            cp.add_bool_or([on[i][a].negated(), read.negated(), both])
            latency, rate = machine.link(a, b)
            copy = round(latency + ops[i].out_bytes[0] / rate) * both
            arrives[b].append(copy)
            if machine.shared(a, b) >= 0:
                shared.setdefault(machine.shared(a, b), []).append(copy)
    for d in devices:
        cp.add(most >= sum(round(op.us / machine.speed[d]) * on[i][d] for i, op in enumerate(ops)))
        cp.add(most >= sum(arrives[d]))
        if machine.limit:
            cp.add(sum(graph.weight_bytes[w] * on[i][d] for w, i in first.items()) <= machine.limit)
    for terms in shared.values():
        cp.add(most >= sum(terms))
    cp.minimize(most)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    status = solver.solve(cp)
    if status == cp_model.INFEASIBLE:
        return None
    return round(solver.objective_value) if status == cp_model.OPTIMAL else "unknown"
