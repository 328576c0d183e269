import { rmSync } from "node:fs";

/** Removes what the tests left in temporary folders. */
export default () => rmSync(process.env.TRAINPLAN_SCRATCH, { recursive: true, force: true });
