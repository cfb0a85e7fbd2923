/* fingerprint.h - 64 bits of a text, the same for ever and everywhere.
 *
 * FarmHash's Fingerprint64 (github.com/google/farmhash, farmhash.cc, namespace farmhashna; Pike and Alakuijala, after
 * their CityHash), which its authors promise never to change. TensorFlow's tf.strings.to_hash_bucket_fast and Keras'
 * Hashing layer are this modulo the number of buckets. The joining of fingerprints is TensorFlow's FingerprintCat64
 * (core/platform/fingerprint.h), which tf.sparse.cross_hashed and Keras' HashedCrossing are made of.
 */
#ifndef TY_CONTAINER_INPUT_MAP_FINGERPRINT_H
#define TY_CONTAINER_INPUT_MAP_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

uint64_t ty_fingerprint64(const void *text, size_t n);
uint64_t ty_fingerprint_join(uint64_t a, uint64_t b);
/* Where tf.sparse.cross_hashed begins. */
#define TY_FINGERPRINT_START UINT64_C(0xDECAFCAFFE)

#endif
