// SPDX-License-Identifier: Apache-2.0
// A guest for tests: PID 1 of a container whose image says how it is to lie.
#include <unistd.h>

#include <fstream>
#include <string>

#include "hostile_guest/liar.h"

int honest_main(int argc, char** argv);  // the guest's own

int main(int argc, char** argv) {
  std::ifstream file("/lie");
  std::string words;
  if (argc == 1 && ::getpid() == 1 && std::getline(file, words)) {
    agbox::hostile::Liar(words).live();
  }
  return honest_main(argc, argv);
}
