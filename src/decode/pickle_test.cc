#include "decode/pickle.h"

#include <gtest/gtest.h>

#include "decode/python_text.h"

namespace packtrain {
namespace {

using namespace std::string_literals;

// Python's repr, roughly.
std::string repr(const Pickle& pickle, const PickleValue& value, int depth = 0) {
  if (depth > 5) return "…";
  const auto items = pickle.items(value);
  std::string out;
  switch (value.kind) {
    case PickleKind::none:
      return "None";
    case PickleKind::boolean:
      return value.integer != 0 ? "True" : "False";
    case PickleKind::integer:
      return std::to_string(value.integer);
    case PickleKind::real:
      return std::to_string(value.real);
    case PickleKind::text:
      return "'" + std::string(Pickle::text(value)) + "'";
    case PickleKind::bytes:
      return "b'" + std::string(Pickle::text(value)) + "'";
    case PickleKind::list:
    case PickleKind::tuple:
      for (const PickleValue& item : items) out += (out.empty() ? "" : ", ") + repr(pickle, item, depth + 1);
      return (value.kind == PickleKind::list ? "[" : "(") + out +
             (value.kind == PickleKind::list ? "]" : ")");
    case PickleKind::dict:
      for (size_t i = 0; i < items.size(); i += 2)
        out += (out.empty() ? "" : ", ") + repr(pickle, items[i], depth + 1) + ": " +
               repr(pickle, items[i + 1], depth + 1);
      return "{" + out + "}";
    default:  // not without PickleNames::numpy, and not here
      return "?";
  }
  return out;
}

std::string loads(const std::string& bytes) {
  auto pickle = Pickle::parse(bytes);
  if (!pickle.ok()) return "<" + pickle.status().text();
  return repr(*pickle, pickle->root());
}

// What pickle.dumps(…, protocol) gives for protocols 0 to 5.
const std::string kDicts[] = {
    "(dp0\nVa/b.jpg\np1\nI3\nsVc\xfc/d.jpg\np2\nI70000\ns."s,
    "}q\0(X\7\0\0\0a/b.jpgq\1K\3X\t\0\0\0c\xc3\xbc/d.jpgq\2Jp\x11\1\0u."s,
    "\x80\2}q\0(X\7\0\0\0a/b.jpgq\1K\3X\t\0\0\0c\xc3\xbc/d.jpgq\2Jp\x11\1\0u."s,
    "\x80\3}q\0(X\7\0\0\0a/b.jpgq\1K\3X\t\0\0\0c\xc3\xbc/d.jpgq\2Jp\x11\1\0u."s,
    "\x80\4\x95\"\0\0\0\0\0\0\0}\x94(\x8c\7a/b.jpg\x94K\3\x8c\tc\xc3\xbc/d.jpg\x94Jp\x11\1\0u."s,
    "\x80\5\x95\"\0\0\0\0\0\0\0}\x94(\x8c\7a/b.jpg\x94K\3\x8c\tc\xc3\xbc/d.jpg\x94Jp\x11\1\0u."s,
};
const std::string kPairs[] = {
    "(lp0\n(Vx.jpg\np1\nI1\ntp2\na(Vy.jpg\np3\nI2\ntp4\na."s,
    "]q\0((X\5\0\0\0x.jpgq\1K\1tq\2(X\5\0\0\0y.jpgq\3K\2tq\4e."s,
    "\x80\2]q\0(X\5\0\0\0x.jpgq\1K\1\x86q\2X\5\0\0\0y.jpgq\3K\2\x86q\4e."s,
    "\x80\3]q\0(X\5\0\0\0x.jpgq\1K\1\x86q\2X\5\0\0\0y.jpgq\3K\2\x86q\4e."s,
    "\x80\4\x95\x1d\0\0\0\0\0\0\0]\x94(\x8c\5x.jpg\x94K\1\x86\x94\x8c\5y.jpg\x94K\2\x86\x94"
    "e."s,
    "\x80\5\x95\x1d\0\0\0\0\0\0\0]\x94(\x8c\5x.jpg\x94K\1\x86\x94\x8c\5y.jpg\x94K\2\x86\x94"
    "e."s,
};

TEST(PickleTest, ReadsDictsAndListsOfEveryProtocol) {
  for (const std::string& bytes : kDicts) EXPECT_EQ(loads(bytes), "{'a/b.jpg': 3, 'c\xc3\xbc/d.jpg': 70000}");
  for (const std::string& bytes : kPairs) EXPECT_EQ(loads(bytes), "[('x.jpg', 1), ('y.jpg', 2)]");
}

TEST(PickleTest, ReadsEveryPlainValue) {
  EXPECT_EQ(loads("\x80\4]\x94(\x8c\1p\x94NG?\xf8\0\0\0\0\0\0\x88\x89"
                  "C\1z\x94\x8a\6\0\0\0\0\0\1J\xfb\xff\xff\xff\x8a\1\xff\x8a\0M\1\1e."s),
            "['p', None, 1.500000, True, False, b'z', 1099511627776, -5, -1, 0, 257]");
  EXPECT_EQ(loads("(lp0\nVp\np1\naNaF1.5\naI01\naI00\naL1099511627776L\naI-5\na."s),
            "['p', None, 1.500000, True, False, 1099511627776, -5]");
  EXPECT_EQ(loads("(S'a\\x41\\'\\n\\101'\nS\"q\"\nT\1\0\0\0xU\1yV\\u00e4\\U0001f600\nt."s),
            "('aA'\nA', 'q', 'x', 'y', '\xc3\xa4\xf0\x9f\x98\x80')");
  EXPECT_EQ(loads("\x80\5\x8d\1\0\0\0\0\0\0\0a\x8e\1\0\0\0\0\0\0\0b\x87."s).substr(0, 1),
            "<");  // one too few
  EXPECT_EQ(loads("\x80\5\x8d\1\0\0\0\0\0\0\0a\x8e\1\0\0\0\0\0\0\0b\x96\1\0\0\0\0\0\0\0c\x87."s),
            "('a', b'b', b'c')");
  EXPECT_EQ(loads(")."), "()");
  EXPECT_EQ(loads("K\1\x85."), "(1)");
}

TEST(PickleTest, FollowsTheMemo) {
  EXPECT_EQ(loads("\x80\2]q\0(X\1\0\0\0aq\1h\1h\1e."s), "['a', 'a', 'a']");
  EXPECT_EQ(loads("](Vx\np7000000\ng7000000\ne."s), "['x', 'x']");
  EXPECT_EQ(loads("](\x8c\1ar\xff\xff\xff\xffj\xff\xff\xff\xff"
                  "e."s),
            "['a', 'a']");
  EXPECT_EQ(loads("K\1\x94K\2\x94h\0h\1\x86."s), "(1, 2)");
  EXPECT_EQ(loads("]q\0h\0a."s).substr(0, 3), "[[[");  // a list that holds itself
  EXPECT_EQ(loads("(K\1K\0012t0K\5."s), "5");          // POP, DUP, POP of a mark's values
}

struct Hostile {
  std::string bytes, opcode;
};

TEST(PickleTest, RefusesWhateverCouldExecute) {
  const Hostile hostile[] = {
      {"cos\nsystem\n(S'echo x'\ntR.", "GLOBAL (os.system)"},
      {"\x80\4\x8c\2os\x8c\6system\x93."s, "STACK_GLOBAL (os.system)"},
      {"\x80\2}q\0X\1\0\0\0acnumpy.core.multiarray\nscalar\nq\1."s, "GLOBAL (numpy.core.multiarray.scalar)"},
      {"(S'x'\nios\nsystem\n.", "INST (os.system)"},
      {"(S'x'\no.", "OBJ"},
      {"NN\x81.", "NEWOBJ"},
      {"NNN\x92.", "NEWOBJ_EX"},
      {"NNR.", "REDUCE"},
      {"NNb.", "BUILD"},
      {"\x82\1.", "EXT1"},
      {"\x83\1\1.", "EXT2"},
      {"\x84\1\1\1\1.", "EXT4"},
      {"Pid\n.", "PERSID"},
      {"NQ.", "BINPERSID"},
      {"\x97.", "NEXT_BUFFER"},
      {"N\x98.", "READONLY_BUFFER"},
  };
  for (const Hostile& attack : hostile) {
    const auto pickle = Pickle::parse(attack.bytes);
    EXPECT_EQ(pickle.status().code(), Code::corrupt) << attack.opcode;
    EXPECT_NE(pickle.status().message().find("opcode " + attack.opcode), std::string::npos)
        << pickle.status().message();
    EXPECT_NE(pickle.status().message().find("could execute code"), std::string::npos);
  }
}

TEST(PickleTest, CorruptBytesAreErrorsWithTheirOffset) {
  for (const std::string& bytes : {""s,
                                   "K"s,
                                   "K\1"s,
                                   "\x80\6."s,
                                   "."s,
                                   "a."s,
                                   "NNa."s,
                                   "(K\1d."s,
                                   "}(K\1u."s,
                                   "t."s,
                                   "e."s,
                                   "]K\1K\2s."s,
                                   "h\0."s,
                                   "g5\n."s,
                                   "Iabc\n."s,
                                   "F1.x\n."s,
                                   "L99999999999999999999L\n."s,
                                   "\x8a\x9\1\1\1\1\1\1\1\1\1."s,
                                   "S'abc\n."s,
                                   "Sabc\n."s,
                                   "S'\\q'\n."s,
                                   "V\\u12\n."s,
                                   "X\xff\xff\xff\xff"
                                   "a."s,
                                   "\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                                   "a."s,
                                   "\x95\xff\0\0\0\0\0\0\0."s,
                                   "N.N."s,
                                   "\xff."s,
                                   "\x8f."s,
                                   "0."s,
                                   "1."s,
                                   "2."s,
                                   "(2."s,
                                   "(."s,
                                   "N(."s}) {
    const auto pickle = Pickle::parse(bytes);
    EXPECT_EQ(pickle.status().code(), Code::corrupt) << testing::PrintToString(bytes);
    EXPECT_EQ(pickle.status().where().rfind("pickle @ ", 0), 0U) << pickle.status().text();
  }
}

TEST(PickleTest, TruncationAtAnyByteIsAnError) {
  for (const std::string& bytes : kDicts)
    for (size_t end = 0; end < bytes.size(); ++end)
      EXPECT_EQ(Pickle::parse(bytes.substr(0, end)).status().code(), Code::corrupt) << end;
}

TEST(PickleTest, DeepNestingIsHarmless) {
  const std::string deep = std::string(1000000, ']') + std::string(999999, 'a') + ".";
  EXPECT_TRUE(Pickle::parse(deep).ok());
  const std::string tuples = "N" + std::string(1000000, '\x85') + ".";
  EXPECT_TRUE(Pickle::parse(tuples).ok());
  const std::string marks = std::string(1000000, '(') + std::string(999999, 't') + ".";
  EXPECT_TRUE(Pickle::parse(marks).ok());
}

TEST(PickleTest, NamesThatWereNoUtf8GetTheirBytesBack) {
  EXPECT_EQ(fs_encode("a\xed\xb2\x80\xed\xb3\xbf.jpg"), "a\x80\xff.jpg");
  EXPECT_EQ(fs_encode("\xed\x9f\xbf\xed"), "\xed\x9f\xbf\xed");
}

}  // namespace
}  // namespace packtrain
