// The extension module stoker._native.
#include "bind/bind.h"
#include "core/base/kernels.h"
#include "core/base/pack_kernels.h"
#include "core/color/color_kernels.h"
#include "core/color/pixel_split.h"
#include "core/jpeg/region/entropy_kernels.h"
#include "core/jpeg/region/plane_kernels.h"
#include "core/resize/resample.h"
#include "core/shards/crc32c.h"
#include "core/threads/thread.h"

namespace {

// Now, and not when a thread first needs them: a process that is forked while another thread chooses would
// wait for that thread.
void choose_kernels() {
  stoker::color_kernels();
  stoker::crc32c_kernels();
  stoker::entropy_kernels();
  stoker::pack_kernels();
  stoker::plane_kernels();
  stoker::resample_kernels();
  stoker::split_kernels();
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "The native core of Stoker. Use the functions of the stoker package instead.";
  // What frameworks, daemon threads and forks still hold when a program ends is not an error of it.
  nanobind::set_leak_warnings(false);
  // A STOKER_KERNELS that cannot be followed is an ImportError here, and no surprise in a thread later.
  stoker::kernel_level();
  m.def("kernel_level", &stoker::kernel_level,
        "The highest level of kernels that run: \"portable\", \"sse42\", \"avx2\", \"avx512\" or \"neon\".");
  stoker::prepare_for_exceptions();
  choose_kernels();
  stoker::bind::watch_the_interpreter();
  stoker::bind::register_errors(m);
  stoker::bind::register_shards(m);
  stoker::bind::register_examples(m);
  stoker::bind::register_jpeg(m);
  stoker::bind::register_images(m);
  stoker::bind::register_resize(m);
  stoker::bind::register_order(m);
  stoker::bind::register_remote(m);
  stoker::bind::register_sources(m);
  stoker::bind::register_color(m);
  stoker::bind::register_transforms(m);
  stoker::bind::register_builds(m);
  stoker::bind::register_audit(m);
  stoker::bind::register_engine(m);
}
