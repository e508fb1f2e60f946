/* recovery/space.h: the three packet-number spaces (RFC 9000 §12.3). 0-RTT and 1-RTT share one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_RECOVERY_SPACE_H
#define LEAT_RECOVERY_SPACE_H

typedef enum leat_space {
    LEAT_SPACE_INITIAL,
    LEAT_SPACE_HANDSHAKE,
    LEAT_SPACE_APP,
    LEAT_SPACES
} leat_space;

#endif
