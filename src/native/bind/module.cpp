// The extension module stoker._native.
#include "bind/bind.h"

NB_MODULE(_native, m) {
  m.doc() = "The native core of Stoker. Use the functions of the stoker package instead.";
  stoker::bind::watch_for_the_end();
  stoker::bind::register_errors(m);
  stoker::bind::register_records(m);
  stoker::bind::register_example(m);
  stoker::bind::register_jpeg(m);
  stoker::bind::register_resample(m);
  stoker::bind::register_reencode(m);
  stoker::bind::register_order(m);
  stoker::bind::register_remote(m);
  stoker::bind::register_sample_source(m);
  stoker::bind::register_record_set(m);
  stoker::bind::register_file_set(m);
  stoker::bind::register_color(m);
  stoker::bind::register_view(m);
  stoker::bind::register_finished_batch(m);
  stoker::bind::register_caches(m);
  stoker::bind::register_engine(m);
}
