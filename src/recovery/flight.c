/* recovery/flight.c: see flight.h; what is done per packet stands in sent.c, next to the records.
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery/flight.h"

void leat_flight_init(leat_flight *flight)
{
    *flight = (leat_flight){0};
}
