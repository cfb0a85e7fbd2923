/* yaml_scalar.h - private to base: plain scalars that other YAML readers would take for something else. */
#ifndef TY_BASE_YAML_SCALAR_H
#define TY_BASE_YAML_SCALAR_H

#include "base/doc.h"

/* Whether YAML 1.1 reads this plain scalar otherwise than we do; fills the warning if so. */
bool ty_yaml_scalar_doubt(const ty_doc *d, ty_error *warning);

#endif
