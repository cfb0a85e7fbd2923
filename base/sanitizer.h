/* sanitizer.h - whether this is a build for the address sanitizer, of gcc or of clang, which say so in different ways.
 */
#ifndef TY_BASE_SANITIZER_H
#define TY_BASE_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__)
#define TY_SANITIZES_ADDRESS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TY_SANITIZES_ADDRESS 1
#endif
#endif
#ifndef TY_SANITIZES_ADDRESS
#define TY_SANITIZES_ADDRESS 0
#endif

#endif
