/* io/files.h: for the files that io/ writes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_FILES_H
#define LEAT_IO_FILES_H

#include <leat/loop.h>

/* Writes all len bytes. LEAT_ERR_IO with errno. */
leat_err leat_io_write(int fd, const void *data, size_t len);

/* Memory of its own, and a zeroed object in it, for what is made without a context. LEAT_ERR_NOMEM.
 */
leat_err leat_io_own(size_t size, leat_mem **mem, leat_buf *self);

/* Gives both back; errno stays. */
void leat_io_disown(leat_mem *mem, leat_buf *self);

#endif
