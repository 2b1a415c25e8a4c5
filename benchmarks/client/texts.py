"""The texts that the speech benchmarks read aloud."""

TEXTS = (
    "Good morning. The train to the coast leaves from platform four in ten minutes.",
    "She opened the window, listened for a moment, and closed it again.",
    "Please take a seat; the doctor will be with you shortly.",
    "The river was low that summer, and the mill stood still for most of the day.",
    "If you would like to hear the menu again, say repeat, or press the star key.",
    "We walked along the shore until the lights of the harbour came into view.",
    "Your parcel is on its way and should be with you before noon tomorrow.",
    "Nobody could remember who had planted the old pear tree behind the school.",
    "Mix the flour with a little warm water, cover the bowl, and let it rest.",
    "The second half of the concert begins as soon as everybody is back inside.",
    "今天天气很好，我们去河边走走吧，顺便买一点水果回来。",
    "请稍等，我正在为您查询航班信息，马上就好。",
    "这座老房子已经有一百多年的历史，院子里种着两棵桂花树。",
    "会议改到下午举行，请大家提前十分钟到会议室集合。",
    "他放下手里的书，看着窗外的雨，慢慢地笑了起来。",
    "火车就要开了，请送站的朋友们尽快下车，注意脚下安全。",
)
