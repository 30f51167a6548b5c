// Whether a sanitizer watches, for tests of heavy mathematics: it needs each kind of step once, and is ten times as
// slow. So they have smaller problems there. The same tests with their whole problems are part of every other build;
// .ci/run has them in its step `host`. Of cases that are drawn at random, a sanitizer sees a quarter.
#pragma once

namespace penstock::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// The thread sanitizer follows an order of threads once, and sees memory as slowly as it is large. What only repeats a
// large transfer does so less often there; the address sanitizer's build has every round.
#if defined(__SANITIZE_THREAD__)
constexpr int rounds(int whole) { return (whole + 7) / 8; }
#else
constexpr int rounds(int whole) { return whole; }
#endif

constexpr int some_of(int cases) { return kSanitized ? (cases + 3) / 4 : cases; }

}  // namespace penstock::test
