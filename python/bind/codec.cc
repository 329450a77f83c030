// include/packtrain/codec.h: which codecs this build has.
#include "packtrain/codec.h"

#include "bind.h"

namespace packtrain::bind {

void bind_codec(nb::module_& module) {
  module.def(
      "codecs",
      [] {
        nb::typed<nb::dict, nb::str, bool> compiled_in;
        for (const CodecInfo& codec : codecs()) compiled_in[to_text(codec.name)] = codec.compiled_in;
        return compiled_in;
      },
      "Every codec's name, and whether it is compiled in.");
}

}  // namespace packtrain::bind
