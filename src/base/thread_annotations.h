// Annotations with which clang checks at compile time that a member is used with its lock held
// (-Wthread-safety, an error in the clang builds). Other compilers ignore them. The names are those of
// clang's documentation (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html). The annotated locks are
// os::Mutex and, in the guest library, SpinLock.
//
// A lock-protected member is GUARDED_BY its lock. A function that needs the lock REQUIRES it, and one that
// takes it EXCLUDES it. A constructor or destructor is not checked, because no other thread has the object.
#pragma once

#ifdef __clang__
#define CARVE_THREAD_ANNOTATION(attribute) __attribute__((attribute))
#else
#define CARVE_THREAD_ANNOTATION(attribute)
#endif

// Marks a class whose objects are locks. `kind` is its name in the compiler's messages.
#define CAPABILITY(kind) CARVE_THREAD_ANNOTATION(capability(kind))
// Marks a class whose objects hold a lock from their construction to their destruction.
#define SCOPED_CAPABILITY CARVE_THREAD_ANNOTATION(scoped_lockable)

// Marks a member that may be accessed only with the lock held, and a pointer for whose target this holds.
#define GUARDED_BY(lock) CARVE_THREAD_ANNOTATION(guarded_by(lock))
#define PT_GUARDED_BY(lock) CARVE_THREAD_ANNOTATION(pt_guarded_by(lock))

// Marks a function whose caller must hold the locks, or must not hold them.
#define REQUIRES(...) CARVE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) CARVE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

// Marks a function that takes the locks, releases them, or takes them if it returns the first argument.
// If no lock is given, the object itself is the lock.
#define ACQUIRE(...) CARVE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) CARVE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) CARVE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))

// After a call of such a function, the analysis treats the lock as held. Used in a lambda whose caller holds
// the lock.
#define ASSERT_CAPABILITY(lock) CARVE_THREAD_ANNOTATION(assert_capability(lock))
// Marks a function that the analysis cannot follow. A comment next to it states the reason.
#define NO_THREAD_SAFETY_ANALYSIS CARVE_THREAD_ANNOTATION(no_thread_safety_analysis)
