import { chromium } from "@playwright/test";
import { launchOptions } from "./browser.mjs";
const b = await chromium.launch(launchOptions);
const u="http://127.0.0.1:8097";
const views={wide:{width:1440,height:900},narrow:{width:390,height:844}};
const ids=["28ca898f-f432-8318-a803-61cec3f39af8","1c02d277-60e3-8a23-a205-ca44dbf6ebe3","ae56a4da-76bc-8cb0-9ea6-3b76cce1b538"];
const pages={results:"/results",run:"/run?id="+ids[1],failed:"/run?id="+ids[2],compare:"/compare?runs="+ids.slice(0,2).join(","),history:"/history"};
for(const [n,p] of Object.entries(pages)) for(const [w,viewport] of Object.entries(views)) for (const colorScheme of (process.argv[2]||"light").split(",")){
 const pg=await b.newPage({viewport,colorScheme});
 await pg.goto(u+p); await pg.waitForTimeout(3500);
 await pg.screenshot({path:`/tmp/look/${n}-${w}-${colorScheme}.png`,fullPage:true}); console.log(n,w,pg.url()); await pg.close();
}
await b.close();
