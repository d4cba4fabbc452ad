// Backends of your own: devices, their memory, streams and kernels.
//
// A backend is a plug-in: a shared library libberth_<name>.so that links
// libberth.so and says BERTH_PLUGIN(name, register_it). It is opened at the
// first device query when it lies beside libberth.so or BERTH_PLUGINS names
// it, and refused unless it was built with the headers of that library.
// src/backends/skeleton is a whole one to copy; its README says what a device
// must keep to.

#ifndef BERTH_BACKEND_H_
#define BERTH_BACKEND_H_

#include "berth/base/environment.h"
#include "berth/device/backend_registry.h"
#include "berth/device/inline_stream.h"
#include "berth/device/plugin.h"
#include "berth/device/thread_stream.h"
#include "berth/op/kernel.h"

#endif  // BERTH_BACKEND_H_
