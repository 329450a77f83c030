#include "tools/command.h"

int main(int argc, char** argv) {
  using namespace packtrain::tools;
  return run_command(argc, argv,
                     {{"pack", declare_pack},
                      {"index", declare_index},
                      {"info", declare_info},
                      {"ls", declare_ls},
                      {"cat", declare_cat},
                      {"extract", declare_extract},
                      {"show", declare_show},
                      {"verify", declare_verify},
                      {"doctor", declare_doctor},
                      {"synth", declare_synth}});
}
