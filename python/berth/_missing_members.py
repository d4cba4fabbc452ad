"""What an AttributeError says of members that objects lack, for users who come from TensorFlow."""

# Members of TensorFlow's classes that Berth's lack, or have not had since version 1, and what does the same.
_V1_DATA = {"make_one_shot_iterator": "iter(dataset)", "make_initializable_iterator": "iter(dataset)",
            "output_types": "element_spec", "output_shapes": "element_spec", "output_classes": "element_spec",
            "fingerprint": "the element_spec, and what save() writes, say whether data sets are the same"}
INSTEAD = {
    "Dataset": {**_V1_DATA, "numpy": "as_numpy_iterator()", "map_with_legacy_function": "map()", "shape": "element_spec",
                "filter_with_legacy_function": "filter()", "dtype": "element_spec"},
    "Iterator": {**_V1_DATA, "initializer": "iter(dataset) begins anew"},
    "Strategy": {"experimental_run": "run()", "experimental_run_v2": "run()", "unwrap": "experimental_local_results()",
                 "group": "calls run in the order of the program", "make_dataset_iterator": "experimental_distribute_dataset()",
                 "make_input_fn_iterator": "distribute_datasets_from_function()", "configure": "arguments of the strategy",
                 "update_config_proto": "there are no sessions", "colocate_vars_with": "tf.device(variable.device)"},
    "StrategyExtended": {"worker_devices_by_replica": "strategy.devices", "non_slot_devices": "variables live with those they "
                                                                                              "belong to",
                         "read_var": "variable.read_value()", "update_non_slot": "strategy.extended.update()"},
    "Function": {"experimental_get_compiler_ir": "plan_text() shows what runs", "function_spec": "input_signature, "
                                                                                                 "pretty_printed_concrete_"
                 "signatures() and inspect.signature()", "function_type": "inspect.signature()", "name": "__name__",
                 "get_initialization_function": "the first call makes variables"},
    "ConcreteFunction": {"function_def": "graph, or save_graph(path) of the tf.function", "add_to_graph": "there are no other "
                                                                                                          "graphs: "
                         "call it", "add_gradient_functions_to_graph": "tf.GradientTape around a call",
                         "set_external_captures": "pass the value as an argument", "set_variables": "assign to the variables",
                         "replace_capture_with_deferred_capture": "pass the value as an argument",
                         "from_func_graph": "tf.function(f).get_concrete_function()", "name": "__name__"},
    "RaggedTensor": {"eval": "numpy() or to_list()", "op": "there are no ops of graphs", "graph": "there are no graphs",
                     "reshape": "tf.reshape() of its flat_values", "T": "to_tensor(), then tf.transpose()"},
    "SparseTensor": {"eval": "tf.sparse.to_dense(x).numpy()", "op": "there are no ops of graphs", "graph": "there are no graphs",
                     "consumers": "there are no graphs", 
                     "numpy": "tf.sparse.to_dense(x).numpy()", "to_dense": "tf.sparse.to_dense(x)",
                     "T": "tf.sparse.transpose(x)"},
    "Generator": {"reset_from_key_counter": "reset(state), whose first numbers are the counter, the last the key",
                  "seed": "Generator.from_seed(seed)", "uniform_full": "uniform_full_int()"}}


class MissingMember(AttributeError):
    """The sentence is made when it is read: programs ask for many attributes only to see whether they are there."""

    def __init__(self, value, name):
        super().__init__(name)
        self.name, self.obj = name, None
        self._class = type(value)

    def __str__(self):
        import difflib
        cls, name = self._class, self.name
        for base in cls.__mro__:
            instead = INSTEAD.get(base.__name__, {}).get(name)
            if instead is not None:
                return f"a {cls.__name__} has no member '{name}'; in its place: {instead}"
        members = [n for n in dir(cls) if not n.startswith("_")]
        near = difflib.get_close_matches(name, members, 3)
        return f"a {cls.__name__} has no member '{name}'; " + (
            f"near it: {', '.join(near)}" if near else f"it has {', '.join(members[:40])}{', ...' if len(members) > 40 else ''}")

