/* bench/reproduce/slab.c: src/mem/mem.c with slabs of 8 KiB where nobody sets their size. For
 * measurement only: it stands before libleat in the link, whose mem.c is then left out.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>

#define LEAT_SLAB_SIZE_DEFAULT 8192
#include "mem/mem.c"
