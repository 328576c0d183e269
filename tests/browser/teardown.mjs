import { rmSync } from "node:fs";

/** Removes the temporary files of all tests. */
export default () => rmSync(process.env.TRAINPLAN_SCRATCH, { recursive: true, force: true });
