// Backends of your own: devices, their memory, streams and kernels.
//
// A backend is a plug-in: a shared library libberth_<name>.so that links
// libberth.so and contains BERTH_PLUGIN(name, register_it). It is opened at the
// first device query if it is beside libberth.so or BERTH_PLUGINS names it, and
// refused unless it was built with the headers of that library.
// src/backends/skeleton is a complete one to copy; its README lists the rules
// for a device.

#ifndef BERTH_BACKEND_H_
#define BERTH_BACKEND_H_

#include "berth/base/environment.h"
#include "berth/device/backend_registry.h"
#include "berth/device/inline_stream.h"
#include "berth/device/plugin.h"
#include "berth/device/thread_stream.h"
#include "berth/op/kernel.h"

#endif  // BERTH_BACKEND_H_
