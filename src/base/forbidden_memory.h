// For memory that is handed out piece by piece: AddressSanitizer is told what nobody may touch just now, so
// that it sees a step out of a piece as it sees one out of a block of the heap. Nothing without it.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define PACKTRAIN_SEES_ADDRESSES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PACKTRAIN_SEES_ADDRESSES 1
#endif
#endif

#ifdef PACKTRAIN_SEES_ADDRESSES
#include <sanitizer/asan_interface.h>
#define PACKTRAIN_FORBID_MEMORY(address, bytes) ASAN_POISON_MEMORY_REGION(address, bytes)
#define PACKTRAIN_ALLOW_MEMORY(address, bytes) ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#else
#define PACKTRAIN_FORBID_MEMORY(address, bytes) static_cast<void>(0)
#define PACKTRAIN_ALLOW_MEMORY(address, bytes) static_cast<void>(0)
#endif
