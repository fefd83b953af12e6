<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
    <context>
        <name>Hearth</name>
        <message>
            <location filename="app/composition.py" />
            <source>Something in the window went wrong. Your chats are safe.</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>New chat</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Stop the reply</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Answer again</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Copy the reply</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Delete the chat</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Undo</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Toggle the sidebar</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Write a message</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Show the chat</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Show the memory</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Settings</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/actions.py" />
            <source>Close the window</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>Chat moved to trash</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/chats.py" />
            <source>The engine stopped and was started again; your chat is intact</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/pages.py" />
            <source>Show report</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/pages.py" />
            <source>The engine has not started yet.</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/connections/pages.py" />
            <source>Please note</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/memory/view/page.py" />
            <source>Memory</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/memory/view/page.py" />
            <source>Unload the model</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/memory/view/page.py" />
            <source>Gives its memory back; chats stay</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/head.py" />
            <source>Show the sidebar (Ctrl+B)</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/head.py" />
            <source>New chat (Ctrl+N)</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Blue</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Green</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Violet</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Berry</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Slate</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/controls.py" />
            <source>Ember</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>automatic</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Appearance</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Chats</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Models</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Privacy and files</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Help</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Theme</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Light, dark, or as the system is</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Accent</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>The colour of what you can do</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Size of text</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Of everything in the window; also Ctrl and + or -</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Chats as wide as the window</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Otherwise a column that is good to read</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Less motion</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Nothing slides or turns, whatever the system says</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Language</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Of the window; replies are in the language that you write in</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Send with</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>The other one, or Shift+Enter, begins a new line</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Title chats by themselves</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>The model titles a chat after its first reply, while nothing else waits</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Tell me when a long reply is done</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>A notification, where another window is in front</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Keyboard shortcuts</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Everything can be done by keyboard; also Ctrl+/</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Show</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Model at start</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Name or path of the one that is loaded when Hearth opens</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Folders with models</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Looked through besides Hearth's own; nothing is copied or changed</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Most GPU memory</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Models are planned to fit into it</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Most RAM</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>For models and kept chats together</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Disk for kept chats</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>So that old chats go on at once; 0 keeps none. Texts of chats are not in it</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Longer context in 8 bits</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Where memory is short; replies may differ slightly</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Where your chats are</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>On this computer only. Hearth sends nothing of them anywhere and counts nothing</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Open folder</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Back up everything</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Chats, pictures and settings in one file</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Back up…</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Restore a backup</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>What is here now is set aside, not deleted</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Restore…</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Check this computer</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>What Hearth found: processor, GPU, memory, disks</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Check</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Log</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>What the window and the engine wrote</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>About Hearth</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Version, and the licences of what it is made with</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>the one used last</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>As the system</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Light</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Dark</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Enter</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/fields.py" />
            <source>Ctrl+Enter</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/folders.py" />
            <source>Add folder…</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/folders.py" />
            <source>Remove {folder}</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/folders.py" />
            <source>A folder with models</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/page.py" />
            <source>{verb}: {title}</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/settings/page.py" />
            <source>from the next start</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/about_page.py" />
            <source>Hearth {version}</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/about_page.py" />
            <source>A good assistant on your own computer. Apache License 2.0; parts of others below.</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/about_page.py" />
            <source>Licences</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Whose log</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>All</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Information</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Warnings</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Errors</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Least level</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Filter the log</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Copy</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Read again</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>{shown} of {all} lines</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Window</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/log_page.py" />
            <source>Engine</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Saved</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Report</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Nothing is sent. Take out what you do not want to show, and copy it.</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Save the report</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Copied</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Not saved: {why}</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Close</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_dialog.py" />
            <source>Save…</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_page.py" />
            <source>This computer</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_page.py" />
            <source>Your name and home folder are taken out.</source>
            <translation type="unfinished" />
        </message>
        <message>
            <location filename="app/pages/text/report_page.py" />
            <source>Looking…</source>
            <translation type="unfinished" />
        </message>
    </context>
</TS>
