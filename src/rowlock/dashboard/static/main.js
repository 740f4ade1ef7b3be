// What a page does by itself. Each file is one thing; without any of them the pages still work.
import { startForms } from "./forms.js";
import { startKeys } from "./keys.js";
import { startLive } from "./live.js";
import { startCharts } from "./charts.js";
import { startSelection } from "./selection.js";
import { startLogin } from "./login.js";
import { startTimes } from "./times.js";

startTimes();
startForms();
startKeys();
startSelection();
startCharts();
startLogin();
startLive();
