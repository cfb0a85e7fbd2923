/* version.h - the number of this release. */
#ifndef TY_BASE_VERSION_H
#define TY_BASE_VERSION_H

#define TY_VERSION      "0.1.0"
#define TY_VERSION_LINE "trainyard " TY_VERSION

#endif
