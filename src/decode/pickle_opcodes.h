// The opcodes of Python's pickles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace packtrain {

// By their names in Python's pickletools; those that are not here are refused or unknown.
// clang-format off
enum PickleOp : uint8_t {
  kMark = '(', kStop = '.', kPop = '0', kPopMark = '1', kDup = '2', kProto = 0x80, kFrame = 0x95,
  kNone = 'N', kNewTrue = 0x88, kNewFalse = 0x89,
  kInt = 'I', kBinInt = 'J', kBinInt1 = 'K', kBinInt2 = 'M', kLong = 'L', kLong1 = 0x8a, kLong4 = 0x8b,
  kFloat = 'F', kBinFloat = 'G',
  kString = 'S', kBinString = 'T', kShortBinString = 'U',
  kUnicode = 'V', kBinUnicode = 'X', kShortBinUnicode = 0x8c, kBinUnicode8 = 0x8d,
  kBinBytes = 'B', kShortBinBytes = 'C', kBinBytes8 = 0x8e, kByteArray8 = 0x96,
  kEmptyList = ']', kList = 'l', kAppend = 'a', kAppends = 'e',
  kEmptyDict = '}', kDict = 'd', kSetItem = 's', kSetItems = 'u',
  kEmptyTuple = ')', kTuple = 't', kTuple1 = 0x85, kTuple2 = 0x86, kTuple3 = 0x87,
  kGlobal = 'c', kStackGlobal = 0x93, kReduce = 'R', kBuild = 'b',
  kPut = 'p', kBinPut = 'q', kLongBinPut = 'r', kMemoize = 0x94, kGet = 'g', kBinGet = 'h', kLongBinGet = 'j',
};
// clang-format on

// Why an opcode that the reader does not follow is refused. `named`: what it would have imported, if that is
// known; `knows_numpy`: whether NumPy's arrays are among what is read.
std::string why_refused(uint8_t code, std::string_view named, bool knows_numpy);

}  // namespace packtrain
