// SPDX-License-Identifier: Apache-2.0
// Free lists of coroutine frames by size, one set per thread: a frame may be freed on another thread
// than the one that made it, and then stays there.
#include "base/frame_allocator.h"

#include <new>

#include "base/assert.h"

namespace tetrad::base {
namespace {

// Classes of 128 bytes: a frame gets at most 127 bytes too many.
constexpr size_t kClassBytes = 128;
constexpr size_t kClassCount = 32;        // frames up to 4 KiB
constexpr size_t kFramesPerClass = 1024;  // kept at most, per thread

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kReuse = false;  // the sanitizers should see every frame's own life
#else
constexpr bool kReuse = true;
#endif

// A frame that nobody uses is its own link: the list needs no memory.
struct FreeFrame {
  FreeFrame* next;
};

/// Of one thread, by class. The bound of each list keeps a burst of requests from holding its
/// memory for ever.
struct FreeLists {
  FreeFrame* first[kClassCount] = {};
  size_t count[kClassCount] = {};
  ~FreeLists() {
    for (FreeFrame*& list : first) {
      while (list != nullptr) {
        FreeFrame* frame = list;
        list = frame->next;
        ::operator delete(frame);
      }
    }
    // A frame may be freed after the lists of its thread.
    for (size_t& c : count) c = kFramesPerClass;  // later frees of this thread go to the heap
  }
};

thread_local FreeLists free_lists;

}  // namespace

void* allocate_frame(size_t size) {
  TETRAD_ASSERT(size != 0);
  // Class i has the frames of i * 128 + 1 to (i + 1) * 128 bytes.
  const size_t index = (size - 1) / kClassBytes;
  if (!kReuse || index >= kClassCount) return ::operator new(size);
  FreeLists& lists = free_lists;
  if (FreeFrame* frame = lists.first[index]; frame != nullptr) {
    lists.first[index] = frame->next;
    TETRAD_ASSERT(lists.count[index] != 0);
    --lists.count[index];
    return frame;
  }
  return ::operator new((index + 1) * kClassBytes);
}

void free_frame(void* memory, size_t size) noexcept {
  // The caller's size says the class; nothing is stored in the frame.
  const size_t index = (size - 1) / kClassBytes;
  FreeLists& lists = free_lists;
  if (!kReuse || index >= kClassCount || lists.count[index] >= kFramesPerClass) {
    ::operator delete(memory);
    return;
  }
  auto* frame = static_cast<FreeFrame*>(memory);
  frame->next = lists.first[index];
  lists.first[index] = frame;
  ++lists.count[index];
}

}  // namespace tetrad::base
