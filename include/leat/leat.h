/* leat/leat.h: every public header of leat.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_LEAT_H
#define LEAT_LEAT_H

#include <leat/base.h>
#include <leat/buf.h>
#include <leat/ccfb.h>
#include <leat/estimate.h>
#include <leat/event.h>
#include <leat/feedback.h>
#include <leat/h3.h>
#include <leat/jitter.h>
#include <leat/limits.h>
#include <leat/log.h>
#include <leat/loop.h>
#include <leat/nack.h>
#include <leat/pace.h>
#include <leat/quic.h>
#include <leat/report.h>
#include <leat/roq.h>
#include <leat/rtcp.h>
#include <leat/rtp.h>
#include <leat/sched.h>
#include <leat/shared.h>
#include <leat/tls.h>
#include <leat/transport_error.h>
#include <leat/twcc.h>

#endif
