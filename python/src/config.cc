// tf.config.

#include "arguments.h"
#include "classes.h"
#include "convert.h"
#include "fits_report.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using Part = config::LogicalDeviceConfiguration;

void add_device_classes(nb::module_& m) {
  nb::class_<config::LogicalDevice>(m, "LogicalDevice")
      .def_ro("name", &config::LogicalDevice::name)
      .def_ro("device_type", &config::LogicalDevice::device_type)
      .def_ro("simulated", &config::LogicalDevice::simulated)
      .def("__repr__", [](const config::LogicalDevice& d) {
        return "LogicalDevice(name='" + d.name + "', device_type='" +
               d.device_type + "')";
      });
  nb::class_<config::PhysicalDevice>(m, "PhysicalDevice")
      .def_ro("name", &config::PhysicalDevice::name)
      .def_ro("device_type", &config::PhysicalDevice::device_type)
      .def("__eq__", [](const config::PhysicalDevice& a,
                        const config::PhysicalDevice& b) { return a == b; })
      .def("__hash__",
           [](const config::PhysicalDevice& d) {
             return nb::hash(nb::str(d.name.c_str()));
           })
      .def("__repr__", [](const config::PhysicalDevice& d) {
        return "PhysicalDevice(name='" + d.name + "', device_type='" +
               d.device_type + "')";
      });
  nb::class_<Part> c(m, "LogicalDeviceConfiguration");
  construct<Part>(
      c, "LogicalDeviceConfiguration", [](Part* self, Arguments& a) {
        static constexpr Name kNames[] = {{"memory_limit", "memory_limit_mb"},
                                          {"cores", "cores"},
                                          {"workers", "workers"},
                                          {"shared", "shared"}};
        a.bind(kNames, 4);
        const bool limits = !a.object(0).is_none();
        new (self) Part{.cores = a.get_or<std::string>(1, ""),
                        .workers = static_cast<int>(a.get_or<int64_t>(2, 0)),
                        .shared = a.get_or<bool>(3, false),
                        .memory_limit_mb = limits ? a.get<int64_t>(0) : 0};
      });
  c.def_rw("shared", &Part::shared)
      .def_ro("memory_limit", &Part::memory_limit_mb)
      .def_ro("cores", &Part::cores);
}

void add_devices(nb::module_& c) {
  c.def(
      "list_logical_devices",
      [](const std::string& type) {
        return std::vector<config::LogicalDevice>(
            config::list_logical_devices(type, site_of_caller()));
      },
      "device_type"_a = "");
  c.def(
      "list_physical_devices",
      [](const std::string& type) {
        return std::vector<config::PhysicalDevice>(
            config::list_physical_devices(type));
      },
      "device_type"_a = "");
  c.def(
      "get_visible_devices",
      [](const std::string& type) {
        return std::vector<config::PhysicalDevice>(
            config::get_visible_devices(type));
      },
      "device_type"_a = "");
  c.def(
      "set_visible_devices",
      [](std::vector<config::PhysicalDevice> devices, const std::string& type) {
        config::set_visible_devices(devices, type, site_of_caller());
      },
      "devices"_a, "device_type"_a = "");
  c.def(
      "set_memory_growth",
      [](const config::PhysicalDevice& d, bool on) {
        config::set_memory_growth(d, on, site_of_caller());
      },
      "device"_a, "enable"_a);
  c.def("get_memory_growth", &config::get_memory_growth);
  c.def(
      "set_logical_device_configuration",
      [](const config::PhysicalDevice& d, std::vector<Part> parts) {
        config::set_logical_device_configuration(d, parts, site_of_caller());
      },
      "device"_a, "logical_devices"_a);
  c.def("get_logical_device_configuration",
        &config::get_logical_device_configuration);
  c.def("set_device_list", [](const std::string& list) {
    config::set_device_list(list, site_of_caller());
  });
  c.def("set_simulated_devices", [](const std::string& list) {
    config::set_simulated_devices(list, site_of_caller());
  });
}

void add_settings(nb::module_& c) {
  c.def(
      "set_soft_device_placement",
      [](bool on) { config::set_soft_device_placement(on); }, "enabled"_a);
  c.def("get_soft_device_placement", &config::get_soft_device_placement);
  c.def(
      "set_device_policy",
      [](std::optional<std::string> name) {
        config::set_device_policy(name.value_or("silent"));
      },
      "device_policy"_a.none());
  c.def("get_device_policy", &config::get_device_policy);
  c.def("reset_device_error", &config::reset_device_error, "device"_a);
  c.def("set_placement_policy", [](const std::string& name) {
    config::set_placement_policy(placement::Policy(name));
  });
  c.def("set_intra_op_parallelism_threads", [](int n) {
    config::set_intra_op_parallelism_threads(n, site_of_caller());
  });
  c.def("get_intra_op_parallelism_threads",
        &config::get_intra_op_parallelism_threads);
  c.def("set_inter_op_parallelism_threads", [](int n) {
    config::set_inter_op_parallelism_threads(n, site_of_caller());
  });
  c.def("get_inter_op_parallelism_threads",
        &config::get_inter_op_parallelism_threads);
  c.def("reset_memory_stats", &config::reset_memory_stats);
  const auto holders = [](const std::vector<config::MemoryHolder>& all) {
    nb::list rows;
    for (const config::MemoryHolder& h : all) {
      rows.append(nb::make_tuple(h.name, line_text(h.site), h.bytes, h.blocks));
    }
    return rows;
  };
  c.def("get_memory_holders", [holders](const std::string& device, bool peak) {
    const Site site = site_of_caller();
    return holders(freely([&] {
      return peak ? config::get_peak_holders(device, site)
                  : config::get_memory_holders(device, site);
    }));
  });
  c.def("track_memory_peaks", &config::track_memory_peaks);
  c.def("memory_report", &config::memory_report, nb::call_guard<Free>());
  c.def("set_memory_snapshot", &config::set_memory_snapshot);
  c.def("write_memory_snapshot",
        [](const std::string& device, const std::string& path) {
          const Site site = site_of_caller();
          const Free free;
          config::write_memory_snapshot(device, path, site);
        });
  c.def("get_memory_info", [](const std::string& device) {
    const auto info = config::get_memory_info(device, site_of_caller());
    nb::dict d;
    d["current"] = info.current_bytes;
    d["peak"] = info.peak_bytes;
    d["reserved"] = info.reserved_bytes;
    d["limit"] = info.limit_bytes;
    return d;
  });
}

}  // namespace

void add_config(nb::module_& m) {
  add_device_classes(m);
  nb::module_ c = m.def_submodule("config");
  add_devices(c);
  add_settings(c);
  m.def("set_seed", [](int64_t seed) { random::set_seed(seed); });
}

}  // namespace berth::python
