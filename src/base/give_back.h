// Memory back to the system at once.
#pragma once

namespace packtrain {

// Empties a container and frees what it held; assigning {} would keep its capacity.
template <class Container>
void give_back(Container& container) {
  Container().swap(container);
}

}  // namespace packtrain
