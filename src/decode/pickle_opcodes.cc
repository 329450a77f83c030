#include "decode/pickle_opcodes.h"

#include "base/words.h"

namespace packtrain {
namespace {

struct RefusedOp {
  uint8_t code;
  std::string_view name;
};
constexpr RefusedOp kExecuting[] = {
    {'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},
    {'b', "BUILD"},     {'i', "INST"},          {'o', "OBJ"},
    {0x81, "NEWOBJ"},   {0x92, "NEWOBJ_EX"},    {0x82, "EXT1"},
    {0x83, "EXT2"},     {0x84, "EXT4"},         {'P', "PERSID"},
    {'Q', "BINPERSID"}, {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
};
constexpr RefusedOp kSets[] = {{0x8f, "EMPTY_SET"}, {0x90, "ADDITEMS"}, {0x91, "FROZENSET"}};

}  // namespace

std::string why_refused(uint8_t code, std::string_view named, bool knows_numpy) {
  for (const RefusedOp& op : kSets)
    if (op.code == code) return "it holds a set (" + std::string(op.name) + "); pickle a list instead";
  for (const RefusedOp& op : kExecuting) {
    if (op.code != code) continue;
    std::string what = "opcode " + std::string(op.name);
    if (!named.empty()) what += " (" + printable(named) + ")";
    what += " could execute code; packtrain reads plain dict, list, tuple, str, int and float";
    if (knows_numpy && named.starts_with("torch"))
      return what + ", and NumPy arrays, only: tensors are read if torch.save wrote them (\"torch\")";
    return what + (knows_numpy ? ", and NumPy arrays of numbers, only: convert other values first"
                               : " only: convert other values first, as in {str(path): int(label)}");
  }
  return "byte " + std::to_string(code) + " is no opcode: this is no pickle, or it is damaged";
}

}  // namespace packtrain
